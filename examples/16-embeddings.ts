/**
 * Embeds documents in chunks with progress, then finds the one nearest to a question. The vendor is
 * a `fetch` of our own that counts letters instead of understanding texts.
 *
 * Prints:
 *
 *     50 % done
 *     100 % done
 *     nearest: "a skein of wool" (0.91)
 */

// #region program
import { embedding, type Fetch } from '@skein/ai'
import openai from '@skein/ai/openai'

const letters = 'aeiklnosw'
const fetch: Fetch = async (_url, init) => {
  const { input } = JSON.parse(init.body as string) as { input: string[] }
  const data = input.map((text, index) => ({
    index,
    embedding: [...letters].map((letter) => text.split(letter).length - 1),
  }))
  return Response.json({ data, usage: { total_tokens: input.length } })
}

const embedder = embedding({
  model: openai('text-embedding-3-small'),
  config: { apiKey: 'none', fetch },
})

const documents = ['a skein of wool', 'the price of tea', 'nine o’clock', 'a loud saw']
const vectors: (readonly number[])[] = []
for await (const progress of embedder.embed(documents, { chunked: true, batchSize: 2 })) {
  vectors.push(...progress.embeddings.map(({ vector }) => vector))
  console.log(`${progress.percent} % done`)
}

const { embeddings } = await embedder.embed('wool skeins', { inputType: 'query' })
const question = embeddings[0]!.vector
const scores = vectors.map((vector) => cosine(vector, question))
const best = scores.indexOf(Math.max(...scores))
console.log(`nearest: "${documents[best]}" (${scores[best]!.toFixed(2)})`)

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]): number =>
    x.reduce((sum, value, index) => sum + value * y[index]!, 0)
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
}
// #endregion program
