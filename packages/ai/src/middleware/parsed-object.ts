import { parsePartialJson, PartialJson } from '@skein/base'
import type { ObjectDeltaEvent, StreamEvent, ToolCallDeltaEvent } from '../contract/event.ts'
import type { Middleware } from '../contract/middleware.ts'

/** A delta with the field that `parsedObjectMiddleware` adds. */
export type ParsedEventDelta = StreamEvent['delta'] & {
  /** The parsed JSON of this block so far; undefined if there is no value yet. Read-only. */
  readonly parsed?: unknown
}

/** The type to cast events to when `parsedObjectMiddleware` is used (UPP §10.8). */
export type ParsedStreamEvent = StreamEvent & { readonly delta: ParsedEventDelta }

/** Settings of `parsedObjectMiddleware` (UPP §10.7). */
export interface ParsedObjectOptions {
  /** Whether to parse structured answers. Default true. */
  readonly parseObjects?: boolean
  /** Whether to parse the arguments of tool calls. Default true. */
  readonly parseToolCalls?: boolean
}

/** The key in `state` under which the parsers of the current message are stored, by block index. */
const stateKey = 'parsedObject:parsers'
/** The key in `state` under which the function that converts structured data is stored, if the model has one. */
const readKey = 'parsedObject:read'

/** Adds `delta.parsed`, the incrementally parsed JSON, to `object_delta` and `tool_call_delta`. */
export function parsedObjectMiddleware({
  parseObjects = true,
  parseToolCalls = true,
}: ParsedObjectOptions = {}): Middleware {
  return {
    name: 'parsedObject',
    onCycle({ structure }, _cycle, { state, readData }) {
      // Block indexes start again at 0 with each message. `message_start` cannot tell that a message begins,
      // because another middleware may have dropped it.
      state.set(stateKey, new Map<number, PartialJson>())
      if (structure && readData)
        state.set(readKey, (data: unknown) => readData(structure, data, true))
    },
    onStreamEvent(event, { state }) {
      if (event.type === 'object_delta' && parseObjects)
        return withParsed(event, event.delta.text, state)
      if (event.type === 'tool_call_delta' && parseToolCalls)
        return withParsed(event, event.delta.argumentsJson, state)
      return event
    },
  }
}

function withParsed<E extends ObjectDeltaEvent | ToolCallDeltaEvent>(
  event: E,
  piece: string,
  state: Map<string, unknown>,
): E {
  // The cast is safe, because no other code sets this key. `onCycle` sets it before every message of a model; another
  // middleware may send such events where no model was asked.
  const parsers = (state.get(stateKey) ?? new Map()) as Map<number, PartialJson>
  state.set(stateKey, parsers)
  const parser = parsers.get(event.index) ?? new PartialJson()
  parsers.set(event.index, parser)
  parser.push(piece)
  // Only structured answers are converted; the arguments of a tool call are used as they were parsed.
  const reader = event.type === 'object_delta' ? state.get(readKey) : undefined
  const convert = (reader ?? ((data) => data)) as (data: unknown) => unknown // set above, if at all
  const { length } = parser.text
  let cache: { readonly value: unknown } | undefined
  // The text is parsed only when `parsed` is read, because most readers look at few events. More text may
  // have arrived by then; the value is still that of the text up to this event.
  const currentValue = (): unknown => {
    const { text } = parser
    cache ??= {
      value: convert(
        text.length === length ? parser.value() : parsePartialJson(text.slice(0, length)),
      ),
    }
    return cache.value
  }
  const delta = Object.defineProperty({ ...event.delta }, 'parsed', {
    get: currentValue,
    enumerable: true,
    configurable: true,
  })
  return { ...event, delta }
}
