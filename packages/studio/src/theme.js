// Runs before the first paint. `state/theme.ts` writes the same key.
try {
  var theme = localStorage.getItem('studio.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // Storage may be forbidden; then the page follows the system.
}
