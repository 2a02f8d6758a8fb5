import type { Tool } from '@skein/ai'

/** What a probe tool saw. */
export interface ProbeEntry {
  readonly name: string
  readonly at: 'start' | 'end'
  readonly args: unknown
}

export interface ProbeOptions extends Partial<Omit<Tool, 'run'>> {
  /** Told when the tool has started; what it gives is the result. */
  readonly run?: (args: Record<string, unknown>) => unknown
}

/** A log that probe tools write to: when each started and ended, with which arguments. */
export function probeLog(): {
  readonly log: ProbeEntry[]
  probe(name: string, options?: ProbeOptions): Tool
  names(): string[]
} {
  const log: ProbeEntry[] = []
  return {
    log,
    probe: (name, { run = () => `${name} done`, ...options } = {}) => ({
      name,
      description: `Probes ${name}.`,
      parameters: { type: 'object', properties: {} },
      ...options,
      run: async (args: Record<string, unknown>) => {
        log.push({ name, at: 'start', args })
        try {
          await nextTick()
          return await run(args)
        } finally {
          log.push({ name, at: 'end', args })
        }
      },
    }),
    names: () => log.map(({ name, at }) => `${name} ${at}`),
  }
}

/** A turn of the event loop, so that tools that may overlap do. */
export function nextTick(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1))
}

/** Adds two numbers. */
export const add: Tool = {
  name: 'add',
  description: 'Adds two numbers.',
  parameters: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
  run: ({ a, b }: { a: number; b: number }) => a + b,
}
