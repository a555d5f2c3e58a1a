// Before anything is drawn: the colours that were chosen here last.
try {
  const chosen = localStorage.getItem("mercast-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* storage may be forbidden: then as the system has it */ }
