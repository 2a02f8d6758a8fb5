import { BatchReader } from './batch-reader.ts'
import type { ErrorOrigin } from './to-upp-error.ts'

/** A `BatchReader` over a call that gives its items one by one: embeddings in chunks, images. */
export class ResultStream<Item extends object, Result> extends BatchReader<Item, Result> {
  constructor(
    steps: AsyncGenerator<Item, Result>,
    controller: AbortController,
    origin: ErrorOrigin,
  ) {
    super({ batches: inBatches(steps), controller, origin })
  }
}

async function* inBatches<Item, Result>(
  steps: AsyncGenerator<Item, Result>,
): AsyncGenerator<readonly Item[], Result> {
  for (;;) {
    const step = await steps.next()
    if (step.done) return step.value
    yield [step.value]
  }
}
