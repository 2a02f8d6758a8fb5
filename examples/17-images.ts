/**
 * Makes an image while showing its previews, and edits it with a mask. The vendor is a `fetch` of
 * our own that knows one picture: a red dot.
 *
 * Prints:
 *
 *     preview of image 0: 70 bytes
 *     image 0: 70 bytes of image/png
 *     done: {"imagesGenerated":1,"inputTokens":9,"outputTokens":16,"totalTokens":25}
 *     edit: image, mask, model, prompt, size
 */

// #region program
import { image, type Fetch } from '@skein/ai'
import openai from '@skein/ai/openai'

const dot =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='

const fetch: Fetch = async (_url, { body }) => {
  if (body instanceof FormData) {
    console.log('edit:', [...new Set(body.keys())].toSorted().join(', '))
    return Response.json({ data: [{ b64_json: dot }] })
  }
  const usage = { input_tokens: 9, output_tokens: 16, total_tokens: 25 }
  const events = [
    { type: 'image_generation.partial_image', partial_image_index: 0, b64_json: dot },
    { type: 'image_generation.completed', b64_json: dot, output_format: 'png', usage },
  ]
  const frames = events.map((event) => `data: ${JSON.stringify(event)}\n\n`)
  return new Response(frames.join(''), { headers: { 'content-type': 'text/event-stream' } })
}

const painter = image({
  model: openai('gpt-image-1'),
  config: { apiKey: 'none', fetch },
  params: { size: '1024x1024' },
})

const painting = painter.stream('A red dot')
for await (const event of painting) {
  if (event.type === 'preview') {
    console.log(`preview of image ${event.index}: ${event.image.toBytes().length} bytes`)
  } else if (event.type === 'image') {
    const { image: made } = event.image
    console.log(`image ${event.index}: ${made.toBytes().length} bytes of ${made.mimeType}`)
  }
}

const { images, usage } = await painting.result
console.log('done:', JSON.stringify(usage))

const red = images[0]!.image
await painter.edit({ prompt: 'Make it blue', image: red, mask: red })
// #endregion program
