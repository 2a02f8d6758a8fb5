import { appendFileSync } from 'node:fs'
import { defineTool, type RunnableTool } from '@skein/runtime'
import { z } from 'zod'

/** A line of the ledger: the code of a call began or ended in a process, or took effect. */
export interface OutsideLine {
  readonly what: 'begin' | 'deed' | 'end'
  readonly pid: number
  readonly tool: string
  readonly threadId: string
  readonly callId: string
  readonly ref: string
  readonly args: object
}

/** What a call runs with. */
export interface Outside {
  readonly ref: string
  readonly beforeMs: number
  readonly afterMs: number
  readonly cents: number
  readonly to?: { readonly name: string } | { readonly id: number } | undefined
}

// Calls of a test say how long they take; the schema makes other arguments of what the model sends.
const args: z.ZodType<Outside> = z.object({
  ref: z.string(),
  beforeMs: z.number().default(50),
  afterMs: z.number().default(50),
  cents: z.coerce
    .number()
    .default(5)
    .transform((n) => n * 100),
  to: z
    .union([z.string().transform((name) => ({ name })), z.number().transform((id) => ({ id }))])
    .optional(),
})

/** Writes a line that no kill can take back. */
function note(line: Omit<OutsideLine, 'pid'>): void {
  appendFileSync(process.env['LEDGER']!, `${JSON.stringify({ ...line, pid: process.pid })}\n`)
}

/** Whether a ledger says that a call took effect. */
export function hasDeed(text: string, tool: string, ref: string): boolean {
  return text.split('\n').some((line) => {
    if (line === '') return false
    const one = JSON.parse(line) as OutsideLine
    return one.what === 'deed' && one.tool === tool && one.ref === ref
  })
}

/** The time limit of the writes. The default grace after it is five seconds. */
const TOOL_LIMIT_MS = 1_500

/** A tool that takes effect once, some time after it begins, and ends some time after that, whatever its signal says. */
export function outside(
  name: string,
  options: Partial<Parameters<typeof defineTool<Outside>>[0]> = {},
): RunnableTool<Outside> {
  const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  return defineTool<Outside>({
    name,
    description: name,
    risk: 'write_low_risk',
    timeoutMs: TOOL_LIMIT_MS,
    ...(options as object),
    args,
    async execute({ threadId }, given, { toolCallId: callId }) {
      const { ref, beforeMs, afterMs } = given
      const line = { tool: name, threadId, callId, ref, args: given }
      note({ ...line, what: 'begin' })
      await wait(beforeMs)
      note({ ...line, what: 'deed' })
      await wait(afterMs)
      note({ ...line, what: 'end' })
      return `${name} ${ref}`
    },
  })
}
