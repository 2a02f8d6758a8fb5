import type { WireReply } from '../../gateway/answer-wire.ts'
import type { WireServer } from '../../wires/wire.ts'
import type { Fault } from './fault.ts'

/** Applies the faults that concern what a body says. A whole answer has no events but its text. */
export function withEventFault(
  reply: WireReply,
  wire: WireServer,
  fault: Fault | undefined,
): WireReply {
  const isEventFault = fault?.kind === 'malformed' || fault?.kind === 'error_event'
  if (!isEventFault || reply.status !== 200) return reply
  const { body } = reply
  if (typeof body !== 'string') return { ...reply, body: broken(body, wire, fault) }
  if (fault.kind === 'malformed') return { ...reply, body: body.slice(0, body.length >> 1) }
  return { ...reply, body: JSON.stringify(wire.encodeError(errorOf(fault)).body) }
}

async function* broken(
  texts: AsyncGenerator<string, void>,
  wire: WireServer,
  fault: Fault & { kind: 'malformed' | 'error_event' },
): AsyncGenerator<string, void> {
  const { afterEvents = 0 } = fault
  let count = 0
  try {
    while (count < afterEvents) {
      const { done, value } = await texts.next()
      if (done) break
      if (value !== '') count += 1
      yield value
    }
  } finally {
    await texts.return()
  }
  if (fault.kind === 'error_event') yield failureText(wire, fault)
  else yield wire.name === 'ollama-chat' ? '{"message":{"con\n' : 'data: {"choices":[{"del\n\n'
}

/** Only an encoder knows how its wire tells a failure in a stream; it needs no request for that. */
function failureText(wire: WireServer, fault: Fault & { kind: 'error_event' }): string {
  const request = {
    modelId: '',
    messages: [],
    params: {},
    tools: [],
    stream: true,
    includeUsage: false,
  }
  return wire.createEncoder({ request, id: '', createdAt: 0 }).fail(errorOf(fault))
}

function errorOf({ code, status, message }: Fault & { kind: 'error_event' }): {
  code: typeof code
  message: string
  statusCode?: number
} {
  const told = message ?? 'The vendor was told to fail.'
  return { code, message: told, ...(status !== undefined && { statusCode: status }) }
}
