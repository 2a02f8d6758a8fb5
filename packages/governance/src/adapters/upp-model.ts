import { recordAnswer, type RecordingRun, recordStream } from './call-through.ts'

/** The part of a model of `@skein/ai` that is used here. */
interface UppModel {
  readonly modelId: string
  readonly provider: UppProvider
}

/** The part of a provider that is used here. */
interface UppProvider {
  readonly name: string
  readonly handlers: {
    readonly llm?: { readonly bind: (model: never) => UppBoundModel }
  }
}

/** The part of a bound model that is used here: the events of one message, whole or as a stream. */
interface UppBoundModel {
  readonly complete: (request: never) => Promise<readonly { readonly type: string }[]>
  readonly stream: (request: never) => AsyncIterable<readonly { readonly type: string }[]>
}

/**
 * A model whose answers are recorded in the run. When the run's function is executed again, after an approval
 * or a crash, `llm()` gets the recorded answers with the same call ids, and the model is asked only for what
 * comes after them.
 */
export function uppModel<Model extends UppModel>(run: RecordingRun, model: Model): Model {
  const { provider } = model
  const { llm } = provider.handlers
  if (!llm) return model
  const bind = (reference: never): UppBoundModel => {
    const bound = llm.bind(reference)
    const name = `${provider.name}/${model.modelId}`
    return {
      ...bound,
      complete: (request) => recordAnswer(run, name, () => bound.complete(request)),
      // `llm()` makes the calls of a message when it gets `message_stop`, so the message is recorded before
      // that.
      stream: (request) =>
        recordStream(
          run,
          name,
          () => bound.stream(request),
          (batch) => batch.some(({ type }) => type === 'message_stop'),
        ),
    }
  }
  const handlers = { ...provider.handlers, llm: { ...llm, bind } }
  // A provider is a function with fixed members, so a new one is made around it.
  const call = provider as unknown as (...args: unknown[]) => unknown
  const recorded = Object.defineProperties((...args: unknown[]) => call(...args), {
    name: { value: provider.name, enumerable: true },
    handlers: { value: handlers, enumerable: true },
  }) as unknown as UppProvider
  return { ...model, provider: recorded }
}
