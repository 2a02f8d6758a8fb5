import { memoryStore } from '@skein/runtime'
import { describe, expect, test } from 'vitest'
import { Network, shared } from './cluster.ts'
import { type Landing, lostLease } from './lost-lease.ts'

const LANDINGS: readonly Landing[] = [
  'before the other node takes over',
  'after the call was settled',
  'after the call was settled, unnoticed',
]

describe('a node that loses its lease while a payment runs', () => {
  for (const risk of ['write_low_risk', 'write_high_risk'] as const)
    for (const landing of LANDINGS)
      test(`${risk}, which lands ${landing}: it is told once, and not repeated`, async () => {
        const store = memoryStore()
        const network = new Network()
        const nodes = { open: async () => shared(store), link: () => network.link() }
        const { events, shown } = await lostLease(nodes, { risk, landing })
        const isLate = landing !== 'before the other node takes over' && risk === 'write_low_risk'
        expect(events.find(({ type }) => type === 'tool_execution_end')).toMatchObject(
          isLate ? { outcome: 'unknown' } : { outcome: 'success', result: 'paid, number 7' },
        )
        expect(shown).toContain('paid, number 7')
      })
})
