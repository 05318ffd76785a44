// What a reader has arranged, remembered for a notebook by the browser: its address stands for it.

export function remembered(name: string): string | null {
  try {
    return localStorage.getItem(keyOf(name));
  } catch {
    return null; // a page may forbid a frame to remember anything
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(keyOf(name), value);
  } catch {
    // then it is as long as the page
  }
}

function keyOf(name: string): string {
  return `hta_widgets:${name}:${location.pathname}`;
}
