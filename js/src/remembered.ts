// What a reader has arranged, remembered by the browser: for a notebook, for which its address stands, or everywhere.

export function remembered(name: string, where = location.pathname): string | null {
  try {
    return localStorage.getItem(keyOf(name, where));
  } catch {
    return null; // a page may forbid a frame to remember anything
  }
}

export function remember(name: string, value: string, where = location.pathname): void {
  try {
    localStorage.setItem(keyOf(name, where), value);
  } catch {
    // then it is as long as the page
  }
}

function keyOf(name: string, where: string): string {
  return `hta_widgets:${name}:${where}`;
}
