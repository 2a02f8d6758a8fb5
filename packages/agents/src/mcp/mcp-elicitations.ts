import { defer, type Tool, withToolContext } from '@skein/ai'
import { deriveTool } from '@skein/ai/engine'
import { isPlainObject, type JsonObject } from '@skein/base'
import { invalidUse } from '../contract/agent-error.ts'
import type { AgentContext } from '../contract/event.ts'

/** What the person has answered to the questions of one call, in order. */
type Given = readonly JsonObject[]

interface AskedCall {
  readonly given: Given
  next: number
  open?: JsonObject
}

/** Turns questions that a server asks during a call into interrupts of that call. */
export class Elicitations {
  /** The call that is running: its known answers, and the question without an answer. */
  #call: AskedCall | undefined
  #queue: Promise<void> = Promise.resolve()

  ask(params: Readonly<Record<string, unknown>>): { action: 'accept' | 'cancel'; content?: never } {
    const call = this.#call
    const answer = call?.given[call.next]
    if (call) call.next++
    if (answer) return { action: 'accept', content: answer as never } // the SDK checks it against the schema
    const { message, requestedSchema } = JSON.parse(JSON.stringify(params)) as JsonObject
    if (call) call.open ??= { message: message ?? '', requestedSchema: requestedSchema ?? {} }
    return { action: 'cancel' }
  }

  /**
   * Returns a tool during whose calls the server may ask questions. A question does not say which call it
   * belongs to, so the calls of a connection run one after the other.
   */
  wrap(tool: Tool): Tool {
    const runTool = async function* (
      this: Elicitations,
      params: never,
      context: AgentContext,
    ): AsyncGenerator<unknown, unknown> {
      const before = this.#queue
      let release = (): void => {}
      this.#queue = new Promise<void>((resolve) => (release = resolve))
      try {
        await before
        return yield* this.#run(tool, params, context)
      } finally {
        release()
      }
    }
    return withToolContext(deriveTool(tool, { run: runTool.bind(this) }))
  }

  /** Begins the questions of the running call again, because the call is repeated over a new connection. */
  restart(): void {
    if (this.#call) this.#call.next = 0
  }

  async *#run(tool: Tool, params: never, context: AgentContext): AsyncGenerator<unknown, unknown> {
    context.signal.throwIfAborted()
    const answers = answersOf(context)
    const call: AskedCall = { given: answers, next: 0 }
    this.#call = call
    try {
      // A tool of `mcpTools` yields its progress.
      const result = yield* tool.run(params, context as never) as AsyncGenerator<unknown, unknown>
      if (!call.open) return result
    } catch (error) {
      if (!call.open) throw error // the server may fail because its question was cancelled
    } finally {
      this.#call = undefined
    }
    return defer({ kind: 'input', request: { elicitation: call.open, given: answers } })
  }
}

function answersOf({ deferred, answer }: AgentContext): Given {
  const request = isPlainObject(deferred?.request) ? deferred.request : {}
  const before = Array.isArray(request['given']) ? (request['given'] as unknown as Given) : []
  if (!('elicitation' in request) || answer?.type !== 'approve') return before
  return [...before, answer.data ?? dataOfToken(answer.token ?? '{}')]
}

/** Reads an answer in the form of earlier versions, which had the data as JSON in the token. */
function dataOfToken(token: string): JsonObject {
  try {
    const data: unknown = JSON.parse(token)
    if (isPlainObject(data)) return data as JsonObject // it was parsed from JSON
  } catch {
    // The token is an approval token; the answer has no data.
  }
  throw invalidUse(
    'The answer to the question of an MCP server has no data.',
    "Answer { type: 'approve', data: { … } }.",
  )
}
