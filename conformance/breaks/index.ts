import type { Break, Breaks } from './break.ts'
import { breaks as sa } from './sa.ts'
import { breaks as tp } from './tp.ts'
import { breaks as uaicp } from './uaicp.ts'
import { breaks as uap } from './uap.ts'
import { breaks as uppLater } from './upp-later.ts'
import { breaks as upp } from './upp.ts'

/** Every row's breaks. */
export const allBreaks: Breaks = { ...upp, ...uppLater, ...uap, ...uaicp, ...tp, ...sa }

/** The breaks of the wanted rows, all if none is named, with their rows. */
export function breaksOf(rows: readonly string[] = []): { row: string; change: Break }[] {
  return Object.entries(allBreaks)
    .filter(([row]) => rows.length === 0 || rows.includes(row))
    .flatMap(([row, list]) => list.map((change) => ({ row, change })))
}
