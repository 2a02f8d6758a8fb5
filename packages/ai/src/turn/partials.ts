import { PartialJson } from '@skein/base'
import type { DeepPartial } from '../contract/structure.ts'
import type { StreamResult } from './batch-reader.ts'

/**
 * Reads the data of a streamed, structured answer as far as it has arrived, after each piece of it:
 *
 *     for await (const partial of partials(model.stream('…'))) show(partial.title)
 *
 * It reads the stream's events, so the stream cannot be iterated besides; `stream.turn` can be awaited. An
 * answer that is repaired begins again at nothing.
 */
export async function* partials<Data>(
  stream: StreamResult<Data>,
): AsyncGenerator<DeepPartial<Data>, void> {
  const { readPartial } = stream
  let parser = new PartialJson()
  for await (const event of stream) {
    if (event.type === 'message_start') parser = new PartialJson()
    if (event.type !== 'object_delta' || event.delta.text === '') continue
    parser.push(event.delta.text)
    const value = parser.value()
    if (value === undefined) continue
    // UPP §12.2: the type comes from the schema; the data is not validated against it.
    yield readPartial(value) as DeepPartial<Data>
  }
}
