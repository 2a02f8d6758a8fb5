import { lineText } from '../terminal/table.ts'
import type { ProgramStep, When } from './preload/protocol.ts'

/** How much of an effect or a step a line shows, in characters; of a longer one the end is kept too. */
const MAX_NAME = 64
const MAX_END = 16

/** Names a crash point: `after POST http://bank.test/refunds`. */
export function pointName({
  step,
  when,
}: {
  readonly step: ProgramStep
  readonly when: When
}): string {
  return `${when} ${shortened(step.name)}`
}

/** Cuts a text to what a column of a table has room for. */
export function shortened(text: string): string {
  const line = lineText(text)
  if (line.length <= MAX_NAME) return line
  return `${line.slice(0, MAX_NAME - MAX_END - 1)}…${line.slice(-MAX_END)}`
}
