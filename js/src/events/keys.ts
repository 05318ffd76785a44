// Where a key leads in a list of rows.

/** The row that a key leads to from row `at`; undefined if it leads nowhere. */
export function moveOf(key: string, at: number, rows: number, perPage: number): number | undefined {
  const steps: Record<string, number> = {
    ArrowDown: at + 1,
    ArrowUp: at - 1,
    PageDown: at + perPage,
    PageUp: at - perPage,
    Home: 0,
    End: rows - 1,
  };
  const to = steps[key];
  return to === undefined || rows === 0 ? undefined : Math.max(0, Math.min(rows - 1, to));
}
