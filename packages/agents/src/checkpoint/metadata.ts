import type { Clock, IdSource } from '@skein/base'
import type { CheckpointMetadata } from '../checkpoint.ts'
import type { AgentStateJSON } from '../state.ts'

/** What is known of a checkpoint without reading it (UAP §12.4.2). */
export function checkpointMetadata(
  sessionId: string,
  { step, metadata }: AgentStateJSON,
  { clock, ids }: { clock: Clock; ids: IdSource },
): CheckpointMetadata {
  const { agentId } = metadata
  return {
    sessionId,
    checkpointId: ids(),
    timestamp: new Date(clock.now()).toISOString(),
    step,
    agentId: typeof agentId === 'string' ? agentId : '',
  }
}
