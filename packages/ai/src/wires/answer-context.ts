import { systemClock, uuidV4 } from '@skein/base'
import type { StreamEvent } from '../contract/event.ts'
import { MessageFold } from '../turn/fold-message.ts'
import type { AssistantMessage } from '../contract/message.ts'
import { invalidRequest } from './wire-error.ts'
import type { DecodeContext } from './wire.ts'

/** For a server that reads an assistant message of its client as the answer it once was. */
export function answerContext<Dialect>(provider: string, dialect: Dialect): DecodeContext<Dialect> {
  return {
    target: { provider, modelId: '', dialect },
    request: {
      messages: [],
      params: {},
      tools: [],
      config: {},
      signal: new AbortController().signal,
      clock: systemClock,
      ids: uuidV4,
    },
    warnings: [],
  }
}

/** Reads such a message with the client half; what cannot be read is the client's mistake. */
export function readAnswer(
  provider: string,
  at: string,
  decode: () => readonly StreamEvent[],
): AssistantMessage {
  try {
    const fold = new MessageFold()
    fold.push(decode())
    return fold.message({ ids: uuidV4, clock: systemClock })
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw invalidRequest(provider, `The field "${at}" cannot be read: ${reason}`)
  }
}
