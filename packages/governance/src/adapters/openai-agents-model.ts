import { overlay, recordAnswer, type RecordingRun, recordStream } from './call-through.ts'

/** The part of a model of the OpenAI Agents SDK that is used here. */
interface OpenAiAgentsModel {
  readonly getResponse: (request: never) => Promise<unknown>
  readonly getStreamedResponse: (request: never) => AsyncIterable<{ readonly type: string }>
}

/**
 * A model whose answers are recorded in the run. When the run's function is executed again, after an approval
 * or a crash, the runner gets the recorded answers with the same call ids, and the model is asked only for
 * what comes after them. While a call waits for a person, the model is not asked at all, which ends the
 * runner's loop. The vendor's own response (`providerData`) is not recorded.
 */
export function openAiAgentsModel<Model extends OpenAiAgentsModel>(
  run: RecordingRun,
  model: Model,
): Model {
  return overlay(model, {
    getResponse: (request: never) =>
      recordAnswer(run, 'model', async () => {
        const answer = (await model.getResponse(request)) as Record<string, unknown>
        const { providerData: _providerData, ...rest } = answer
        return rest
      }),
    // The runner makes the calls of an answer when it gets `response_done`, so the answer is recorded before
    // that.
    getStreamedResponse: (request: never) =>
      recordStream(
        run,
        'model',
        () => model.getStreamedResponse(request),
        ({ type }) => type === 'response_done',
      ),
  })
}
