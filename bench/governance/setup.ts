import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineTaskClass, governed, governor, standardPolicy } from '@skein/governance'
import type {
  Approvals,
  GovernedTool,
  Governor,
  Identity,
  Journal,
  TaskClass,
} from '@skein/governance'
import { generateKey } from '@skein/governance/approvals'
import type { PrivateJwk } from '@skein/governance/approvals'
import { fileLog } from '@skein/governance/file-log'
import type { FileLog } from '@skein/governance/file-log'

export const identity: Identity = {
  agent_id: 'agent',
  owner_id: 'bench',
  control_class: 'autonomous',
}

/** The smallest possible tool, so that the measurement shows only what surrounds it. */
export const plainTool = {
  name: 'look_up',
  description: 'Looks up an order.',
  parameters: { type: 'object' },
  run: async (args: { order: string }): Promise<{ order: string; total: number }> => ({
    order: args.order,
    total: 12,
  }),
}

export interface Bench {
  readonly tool: GovernedTool<{ order: string }, { order: string; total: number }>
  readonly task: TaskClass
  readonly governor: Governor
}

/** A governor with one tool of this tier. */
export function setUp(
  audit: Journal,
  risk: 'read_only' | 'write_low_risk' | 'write_high_risk',
  approvals?: Approvals,
): Bench {
  const tool = governed(plainTool, {
    risk,
    ...(risk !== 'read_only' && {
      rollback: ({ order }) => ({ type: 'tool_call', target: 'look_up', payload: { order } }),
    }),
  })
  const task = defineTaskClass({ name: 'bench', tools: [tool], needs: [], verifiers: [] })
  const options = { id: 'bench', audit, policy: standardPolicy, ...(approvals && { approvals }) }
  return { tool, task, governor: governor(options) }
}

/** A log in a new folder. */
export async function newFileLog(key?: PrivateJwk): Promise<FileLog> {
  const dir = mkdtempSync(join(tmpdir(), 'skein-bench-'))
  return fileLog({ dir, origin: 'bench', key: key ?? (await generateKey()).privateJwk })
}
