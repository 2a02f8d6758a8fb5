import { systemClock, uuidV4 } from '@skein/base'
import { MessageFold } from '../fold-message.ts'
import type { AssistantMessage } from '../message.ts'
import type { StreamEvent } from '../event.ts'
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

export function foldAnswer(events: readonly StreamEvent[]): AssistantMessage {
  const fold = new MessageFold()
  fold.push(events)
  return fold.message({ ids: uuidV4, clock: systemClock })
}
