/** Puts a standard request to a vendor that answers as told. */
import type { JsonObject } from '@skein/base'
import { llm, NoRetry, type LLMOptions, type StreamEvent, type Turn } from '@skein/ai'
import { requests, type RequestName } from '../cases/requests.ts'
import type { VendorAnswer, VendorCase } from '../cases/vendor-case.ts'
import { eventStream } from './event-stream.ts'
import { stub, type Seen } from './stub.ts'

export type Way = 'generate' | 'stream'
export const ways: readonly Way[] = ['generate', 'stream']

export interface Asked {
  readonly turn: Turn
  readonly events: readonly StreamEvent[]
  readonly seen: readonly Seen[]
  readonly body: JsonObject
}

export interface AskOptions {
  readonly way?: Way
  /** One answer for all requests, or one for each. Default: `text`. */
  readonly answers?: VendorAnswer | readonly VendorAnswer[]
  readonly options?: Partial<LLMOptions>
}

/** The vendor's answers as HTTP responses. */
export function answering(
  answers: VendorAnswer | readonly VendorAnswer[],
): ReturnType<typeof stub> {
  const list = Array.isArray(answers) ? (answers as VendorAnswer[]) : [answers as VendorAnswer]
  return stub(({ url, body }, count) => {
    const answer = list[Math.min(count, list.length) - 1]!
    const isStream = /"stream":true/.test(body) || /:stream/.test(url)
    if (url.endsWith('/converse-stream'))
      return new Response(eventStream(answer.stream) as Uint8Array<ArrayBuffer>, {
        headers: { 'content-type': 'application/vnd.amazon.eventstream' },
      })
    return isStream
      ? new Response(answer.stream, { headers: { 'content-type': streamType(answer.stream) } })
      : Response.json(answer.whole)
  })
}

const streamType = (stream: string): string =>
  stream.startsWith('{') ? 'application/x-ndjson' : 'text/event-stream'

export async function askVendor(
  vendor: VendorCase,
  request: RequestName,
  { way = 'generate', answers = vendor.answers.text, options = {} }: AskOptions = {},
): Promise<Asked> {
  const { fetch, seen } = answering(answers)
  const { options: asked, history, input } = requests[request]
  const model = llm({
    model: vendor.model,
    config: { apiKey: 'key', fetch, retryStrategy: new NoRetry() },
    ...asked,
    ...options,
  })
  const events: StreamEvent[] = []
  let turn: Turn
  if (way === 'generate') turn = await model.generate(history, input)
  else {
    const stream = model.stream(history, input)
    for await (const event of stream) events.push(event)
    turn = await stream.turn
  }
  return { turn, events, seen, body: bodyOf(seen[0]) }
}

export function bodyOf(seen: Seen | undefined): JsonObject {
  return JSON.parse(seen?.body ?? '{}') as JsonObject
}
