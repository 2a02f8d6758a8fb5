import type { ToolCall } from '@skein/ai'
import type { MessageJSON } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'

/**
 * Gives every call of an answer an id that no other call of the thread has: results, interrupts
 * and evidence refer to calls by id, but some servers number the calls of each answer from 0.
 * `@skein/ai` has already made the ids within one message differ.
 */
export class OwnCallIds {
  readonly #context: DrainContext
  readonly #own = new Map<string, string>()

  constructor(context: DrainContext) {
    this.#context = context
  }

  /** Returns the id that the thread uses for the call to which the model gave this id. */
  of(toolCallId: string): string {
    const ownId = this.#own.get(toolCallId)
    if (ownId !== undefined) return ownId
    const { state, environment } = this.#context
    const isTaken = toolCallId === '' || state.callPlaces.has(toolCallId)
    const own = isTaken ? environment.ids() : toolCallId
    this.#own.set(toolCallId, own)
    return own
  }

  inMessage(message: MessageJSON): MessageJSON {
    const { toolCalls } = message as { readonly toolCalls?: readonly ToolCall[] }
    if (!toolCalls) return message
    const used = new Set<string>()
    const own = toolCalls.map((call) => {
      const { toolCallId: given, metadata } = call
      const toolCallId = used.has(this.of(given)) ? this.#context.environment.ids() : this.of(given)
      used.add(toolCallId)
      if (toolCallId === given) return call
      // The vendor's id is kept in the metadata, as `@skein/ai` does. Calls and results are sent back with the new id.
      const skein = { vendorCallId: given, ...metadata?.['skein'] }
      return { ...call, toolCallId, metadata: { ...metadata, skein } }
    })
    if (own.every((call, place) => call === toolCalls[place])) return message
    return { ...message, toolCalls: own } as MessageJSON // only ids and metadata differ
  }
}
