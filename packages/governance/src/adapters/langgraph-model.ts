import { overlay, recordAnswer, type RecordingRun } from './call-through.ts'

/** The part of a chat model or another runnable of LangChain that is used here. */
interface LangChainModel {
  readonly invoke: (input: never, options?: never) => Promise<unknown>
}

/** The class `AIMessage` of `@langchain/core/messages`. */
type AiMessageClass = new (fields: never) => object

/**
 * A chat model of LangChain whose answers are recorded in the run. When the run's function is executed again,
 * after an approval or a crash, the graph gets the recorded messages with the same call ids, and the model is
 * asked only for what comes after them. While a call waits for a person, the model is not asked at all, which
 * ends the graph's run. A stream of the model yields the whole message as one piece.
 *
 *     import { AIMessage } from '@langchain/core/messages'
 *     const agent = createAgent({ model: langChainModel(run, model, { AIMessage }), tools })
 */
export function langChainModel<Model extends LangChainModel>(
  run: RecordingRun,
  model: Model,
  langChain: { readonly AIMessage: AiMessageClass },
): Model {
  const invoke = async (input: never, options?: never): Promise<unknown> => {
    const { message, value } = await recordAnswer(run, 'model', async () => {
      const answer = await model.invoke(input, options)
      return isMessage(answer) ? { message: fieldsOf(answer) } : { value: answer }
    })
    return message ? new langChain.AIMessage(message as never) : value
  }
  async function* stream(input: never, options?: never): AsyncGenerator<unknown, void> {
    yield await invoke(input, options)
  }
  async function* transform(
    inputs: AsyncIterable<never>,
    options?: never,
  ): AsyncGenerator<unknown, void> {
    for await (const input of inputs) yield await invoke(input, options)
  }
  // These methods return a model with other settings, whose answers are recorded too.
  const derive =
    (name: string) =>
    (...args: unknown[]): unknown => {
      const bound = (model as unknown as Record<string, (...given: unknown[]) => LangChainModel>)[
        name
      ]?.(...args)
      return bound && langChainModel(run, bound, langChain)
    }
  const has = (name: string): boolean => typeof Reflect.get(model, name) === 'function'
  const deriving = ['bindTools', 'withConfig', 'withStructuredOutput'].filter(has)
  return overlay(model, {
    invoke,
    stream: async (input: never, options?: never) => stream(input, options),
    transform,
    ...Object.fromEntries(deriving.map((name) => [name, derive(name)])),
  })
}

function isMessage(value: unknown): value is Record<string, unknown> {
  return typeof (value as { readonly getType?: unknown } | null)?.getType === 'function'
}

/** Returns what `new AIMessage` needs to build the same message again. */
function fieldsOf(message: Record<string, unknown>): Record<string, unknown> {
  const names = ['id', 'name', 'content', 'tool_calls', 'invalid_tool_calls', 'usage_metadata']
  const fields = [...names, 'additional_kwargs', 'response_metadata'].map((name) => [
    name,
    message[name],
  ])
  return Object.fromEntries(fields) as Record<string, unknown>
}
