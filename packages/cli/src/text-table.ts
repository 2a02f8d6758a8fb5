/** Rows as aligned columns. */
export function textTable(rows: readonly (readonly string[])[]): string[] {
  const widths = rows.reduce<number[]>((found, row) => {
    row.forEach((cell, index) => (found[index] = Math.max(found[index] ?? 0, cell.length)))
    return found
  }, [])
  return rows.map((row) =>
    row
      .map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index]!)))
      .join('  '),
  )
}
