from mercast.cli import main

main()
