import { overlay, recordAnswer, type RecordingRun, recordStream } from './call-through.ts'

/** The part of a language model of the AI SDK that is used here. */
interface AiSdkModel {
  readonly provider: string
  readonly modelId: string
  readonly doGenerate: (options: never) => PromiseLike<object>
  readonly doStream: (
    options: never,
  ) => PromiseLike<{ readonly stream: ReadableStream<{ readonly type: string }> }>
}

/**
 * A model whose answers are recorded in the run. When the run's function is executed again, after an approval
 * or a crash, the SDK gets the recorded answers with the same call ids, and the model is asked only for what
 * comes after them. While a call waits for a person, the model is not asked at all, which ends the SDK's
 * loop. The bodies and headers of the vendor's requests and responses are not recorded.
 */
export function aiSdkModel<Model extends AiSdkModel>(run: RecordingRun, model: Model): Model {
  const name = `${model.provider}/${model.modelId}`
  return overlay(model, {
    doGenerate: (options: never) =>
      recordAnswer(run, name, async () => withoutTransport(await model.doGenerate(options))),
    doStream: async (options: never) => {
      const ask = async (): Promise<AsyncIterable<{ readonly type: string }>> =>
        readAll((await model.doStream(options)).stream)
      const parts = recordStream(run, name, ask, ({ type }) => HELD.has(type))
      // The first part is awaited here, so that a failed request rejects `doStream` itself, as an unwrapped
      // model does.
      const first = await parts.next()
      return { stream: toStream(first, parts) }
    },
  })
}

/**
 * Stream parts that are held back until the answer is recorded, because the SDK then runs tools or ends the
 * step.
 */
const HELD: ReadonlySet<string> = new Set(['tool-call', 'finish'])

function withoutTransport(result: object): object {
  const { request: _request, response, ...rest } = result as Record<string, unknown>
  if (typeof response !== 'object' || response === null) return rest
  const { headers: _headers, body: _body, ...kept } = response as Record<string, unknown>
  return { ...rest, response: kept }
}

async function* readAll<T>(stream: ReadableStream<T>): AsyncGenerator<T, void> {
  const reader = stream.getReader()
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    reader.releaseLock()
  }
}

function toStream<T>(
  first: IteratorResult<T, void>,
  rest: AsyncGenerator<T, void>,
): ReadableStream<T> {
  let next: Promise<IteratorResult<T, void>> | undefined = Promise.resolve(first)
  return new ReadableStream<T>({
    async pull(controller) {
      const { done, value } = await (next ?? rest.next())
      next = undefined
      if (done) controller.close()
      else controller.enqueue(value)
    },
  })
}
