// The server's stream. It comes back by itself: the browser tries again, and when that gives up, so does this.

const SILENT = 5000; // milliseconds without a pulse: something is wrong, whatever the connection says
const AGAIN = 2000;

export class Stream {
  constructor(taken) {
    this.taken = taken; // {overlay, pulse, state}
    this.bytes = []; // [when, how many] of the last ten seconds
    this.last = null;
    this.choice = "";
    setInterval(() => this.watch(), 1000);
  }

  open(choice) {
    this.choice = choice;
    this.close();
    const source = new EventSource(`/events?${choice}`);
    this.source = source;
    this.opened = performance.now();
    for (const name of ["overlay", "pulse"]) {
      source.addEventListener(name, (event) => {
        const now = performance.now();
        this.bytes.push([now, event.data.length + name.length + 16]);
        while (this.bytes[0][0] < now - 10000) this.bytes.shift();
        if (name === "pulse") this.last = now;
        this.taken[name](JSON.parse(event.data));
      });
    }
  }

  close() {
    if (this.source) this.source.close();
  }

  watch() {
    const now = performance.now();
    const since = now - Math.max(this.last ?? 0, this.opened ?? 0);
    if (this.source && (this.source.readyState === EventSource.CLOSED || since > SILENT) && now - this.opened > AGAIN) this.open(this.choice);
    this.taken.state(this.last === null ? "wait" : now - this.last > SILENT / 2 ? "lost" : "live", this.last === null ? null : (now - this.last) / 1000);
  }

  /** Bytes a second, over the last ten. */
  get rate() {
    if (!this.bytes.length) return 0;
    const over = Math.min(10, Math.max(1, (performance.now() - this.bytes[0][0]) / 1000));
    return this.bytes.reduce((sum, [, many]) => sum + many, 0) / over;
  }
}
