import { ollamaEmbeddings } from '../embeddings/ollama.ts'
import type { Provider } from '../contract/provider.ts'
import { ollamaChat } from '../wires/ollama-chat/wire.ts'
import { defineVendor } from './define-vendor.ts'

/**
 * Ollama on this machine, or elsewhere with `config.baseUrl` (e.g. `https://ollama.com/api`, which
 * needs a key in `config.apiKey`).
 *
 * - `params` go to the top of the body: `think`, `keep_alive`, `format`, `logprobs`, …; sampling
 *   options belong inside `params.options`, as the API has them.
 * - Images are sent as data; an image given by URL is rejected with INVALID_REQUEST.
 *
 * Request bodies are compared with those of `ollama 0.6.4` (docs/vendor-bodies.md).
 */
export const ollama: Provider = defineVendor({
  name: 'ollama',
  baseUrl: 'http://127.0.0.1:11434/api',
  keyVariables: [],
  llm: {
    wire: ollamaChat,
    dialect: {},
    capabilities: {
      streaming: true,
      tools: true,
      structuredOutput: true,
      imageInput: true,
      documentInput: false,
      videoInput: false,
      audioInput: false,
    },
  },
  embedding: ollamaEmbeddings(),
})

export default ollama
