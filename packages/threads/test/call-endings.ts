import { agentTurn, call, request, response, thread as sampleThread, userTurn } from './samples.ts'
import type { MessagePart } from '../src/document/part.ts'
import type { AgentTurn, Thread } from '../src/document/thread.ts'

/** One answer to one call, as the thread holds it. */
export function answered(part: object): Thread {
  return sampleThread([
    userTurn('go'),
    agentTurn('ada', [response('ada', 1, call('c1')), request('ada', 2, part as MessagePart)]),
  ])
}

const ids = { tool_name: 'look_up', tool_call_id: 'c1' }
export const endings: Record<string, object> = {
  success: { part_kind: 'tool-return', ...ids, status: 'success', content: { n: 1 } },
  failure: {
    part_kind: 'tool-return',
    ...ids,
    status: 'error',
    outcome: 'failed',
    content: 'broke',
  },
  interruption: {
    part_kind: 'tool-return',
    ...ids,
    status: 'error',
    outcome: 'interrupted',
    content: 'stopped',
  },
  denial: {
    part_kind: 'tool-return',
    ...ids,
    status: 'error',
    outcome: 'denied',
    content: 'not allowed',
  },
  'validation error': {
    part_kind: 'tool-return',
    ...ids,
    status: 'validation_error',
    content: 'bad',
  },
  retry: { part_kind: 'retry-prompt', ...ids, content: 'again, please' },
  'retry with details': {
    part_kind: 'retry-prompt',
    ...ids,
    content: [{ type: 'missing', loc: ['q'], msg: 'Field required' }],
  },
}

/** The parts of the last requests, which hold the answers. */
export function lastParts({ value }: { value: Thread }): readonly MessagePart[] {
  const turn = value.turns.at(-1) as AgentTurn
  return turn.messages.flatMap((message) =>
    message.message_type === 'request' ? message.parts : [],
  )
}
