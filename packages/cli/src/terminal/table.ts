import { safeText } from '@skein/base/safe-text'

/** The longest cell of a table, e.g. the title of a thread, in characters. */
const MAX_CELL_CHARS = 120

/** Formats rows as aligned columns. */
export function textTable(cells: readonly (readonly string[])[]): string[] {
  const rows = cells.map((row) => row.map((cell) => lineText(cell)))
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

/** Makes a value safe for a line or a table: a single line, so that it cannot look like several. */
export function lineText(text: string): string {
  return safeText(text, { isLine: true, maxChars: MAX_CELL_CHARS })
}
