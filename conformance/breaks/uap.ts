import type { Breaks } from './break.ts'

/** How each row of this specification can be violated. See `break.ts`. */
export const breaks: Breaks = {
  'UAP-045': [
    {
      clause: 'the question is in the history once',
      in: 'agents/withExchange',
      swap: [
        'if (exchange.every(({ id }) => known.has(id))) return result',
        'if (exchange.every(({ id }) => known.has(id))) return { ...result, state: state.withMessages([input]) }',
      ],
    },
  ],
  'UAP-021': [
    {
      clause: 'no time limit of our own, in generate',
      in: 'agents/generate',
      swap: [
        'return runAgent({ core, ...call, controller })',
        'setTimeout(() => controller.abort(), 600_000).unref()\n  return runAgent({ core, ...call, controller })',
      ],
    },
  ],
}
