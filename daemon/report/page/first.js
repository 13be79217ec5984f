// Before the first paint: the theme that was chosen before, or that of the system.
document.documentElement.dataset.theme = (() => {
  try { return localStorage.getItem('watchkeeper-theme'); } catch { return null; }
})() ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
