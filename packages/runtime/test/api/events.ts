import type { RuntimeEvent } from '../../src/contract/event.ts'

const at = '2026-01-01T00:00:00.000Z'

/** A session in which side A has called `pay` and waits for an approval. */
export function waitingSession(
  interruptId = 'i1',
  kind: 'approval' | 'input' = 'approval',
): RuntimeEvent[] {
  const toolCalls = [{ toolCallId: 'c1', toolName: 'pay', arguments: { amount: 5 } }]
  const content = [{ type: 'text', text: 'I will pay.' }] as const
  const message = { id: 'm1', type: 'assistant', timestamp: at, content, toolCalls } as const
  return [
    { type: 'session_start', at, sessionId: 's1', agent: 'support' },
    { type: 'turn_start', at, turnId: 't1', agentId: 'support/a', side: 'a' },
    { type: 'step_start', at, turnId: 't1', stepId: 'p1', side: 'a', attempt: 1, epoch: 1 },
    { type: 'message_added', at, turnId: 't1', stepId: 'p1', side: 'a', message },
    {
      type: 'interrupt_opened',
      at,
      turnId: 't1',
      interrupt: { id: interruptId, toolCallId: 'c1', kind, request: approval(interruptId) },
    },
  ]
}

function approval(id: string) {
  const identity = { agent_id: 'support' }
  return {
    id,
    digest: 'sha256:1',
    action: { tool: 'pay', args: { amount: 5 }, identity },
    expires_at: '2030-01-01T00:00:00.000Z',
    quorum: 1,
    excluded: ['support'],
  }
}

/** A finished exchange: a user's line and the answer, with a call and its result between. */
export function exchange(name: string): RuntimeEvent[] {
  const user = {
    id: `${name}-u`,
    type: 'user',
    timestamp: at,
    content: [{ type: 'text', text: `ask ${name}` }],
  } as const
  const calls = {
    id: `${name}-a`,
    type: 'assistant',
    timestamp: at,
    content: [{ type: 'text', text: 'One moment.' }],
    toolCalls: [{ toolCallId: `${name}-c`, toolName: 'pay', arguments: { amount: 1 } }],
  } as const
  const answer = {
    id: `${name}-z`,
    type: 'assistant',
    timestamp: at,
    content: [{ type: 'text', text: `answer ${name}` }],
  } as const
  const turnId = `${name}-t`
  const step = { side: 'a', attempt: 1, epoch: 1 } as const
  return [
    { type: 'session_start', at, sessionId: `${name}-s`, agent: 'support' },
    { type: 'message_added', at, turnId: `${name}-u`, side: 'b', message: user },
    { type: 'turn_start', at, turnId, agentId: 'support/a', side: 'a' },
    { type: 'step_start', at, turnId, stepId: `${name}-1`, ...step },
    { type: 'message_added', at, turnId, stepId: `${name}-1`, side: 'a', message: calls },
    {
      type: 'tool_execution_start',
      at,
      turnId,
      toolCallId: `${name}-c`,
      toolName: 'pay',
      arguments: { amount: 1 },
      epoch: 1,
    },
    {
      type: 'tool_execution_end',
      at,
      turnId,
      toolCallId: `${name}-c`,
      toolName: 'pay',
      outcome: 'success',
      result: 'paid',
    },
    { type: 'step_end', at, turnId, stepId: `${name}-1` },
    { type: 'step_start', at, turnId, stepId: `${name}-2`, ...step },
    { type: 'message_added', at, turnId, stepId: `${name}-2`, side: 'a', message: answer },
    { type: 'step_end', at, turnId, stepId: `${name}-2` },
    { type: 'turn_end', at, turnId, outcome: 'completed' },
    {
      type: 'session_end',
      at,
      sessionId: `${name}-s`,
      outcome: 'completed',
      reason: 'response',
      message: `answer ${name}`,
    },
  ]
}

/** A child of a thread as its kernel would have made it. */
export const childCreated = (reference: string): RuntimeEvent => ({
  type: 'subagent_created',
  at,
  reference,
  name: 'worker',
  relation: 'worker',
  parentCommunication: 'implicit',
  isResumable: true,
})
