import type { JsonObject, JsonValue } from '@skein/base'
import type { ModelReference } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { cerebras } from '@skein/ai/cerebras'
import { google } from '@skein/ai/google'
import { groq } from '@skein/ai/groq'
import { mistral } from '@skein/ai/mistral'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import { openrouter } from '@skein/ai/openrouter'
import type { Peers } from '../../../../scripts/peers.ts'
import { callId, pdf, png, schema, type TaskName, type TaskParams } from './tasks.ts'

/** A vendor with its own SDK: the same tasks, written as the documentation of the SDK writes them. */
export interface VendorSdk {
  readonly name: string
  /** The npm package of the SDK. */
  readonly sdk: string
  readonly model: ModelReference
  /** The prefix of the paths below the server, for our `baseUrl`. */
  readonly prefix: string
  readonly params: TaskParams
  /** Tasks that the vendor does not offer, with what is missing. */
  readonly absent?: Partial<Record<TaskName, string>>
  /** Differences that are meant, by a pattern of `differences`, each with its reason. */
  readonly explained?: readonly (readonly [pattern: RegExp, reason: string])[]
  send(peers: Peers, origin: string, task: TaskName): Promise<unknown>
}

const pngUrl = `data:image/png;base64,${png}`
const pdfUrl = `data:application/pdf;base64,${pdf}`
const noDocuments = 'the vendor takes no documents'
const usageInStreams = 'a stream reports usage only when asked, and usage is part of every turn'

/** A task in the format of Chat Completions. */
function chatBody(
  task: TaskName,
  { model, ...dialect }: { model: string } & JsonObject,
): JsonObject {
  const user = (content: JsonValue): JsonObject => ({ role: 'user', content })
  const tools = [
    {
      type: 'function',
      function: { name: 'weather', description: 'The weather of a city.', parameters: schema },
    },
  ]
  const bodies: Record<TaskName, JsonObject> = {
    text: { messages: [user('Hello')] },
    system: { messages: [{ role: 'system', content: 'Be brief.' }, user('Hello')] },
    image: {
      messages: [
        user([
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url: { url: pngUrl } },
        ]),
      ],
    },
    document: {
      messages: [user([dialect['document'] ?? null, { type: 'text', text: 'Summarise.' }])],
    },
    tools: {
      messages: [user('Weather?')],
      tools,
      tool_choice: { type: 'function', function: { name: 'weather' } },
    },
    history: {
      messages: [
        user('Weather?'),
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: callId,
              type: 'function',
              function: { name: 'weather', arguments: '{"city":"Oslo"}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: callId, content: 'rain' },
        user('Thanks'),
      ],
      tools,
    },
    structure: {
      messages: [user('Hello')],
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'answer', schema, strict: true },
      },
    },
    stream: { messages: [user('Hello')], stream: true },
    reasoning: { messages: [user('Hello')], ...(dialect['reasoning'] as JsonObject) },
    sampling: { messages: [user('Hello')], ...(dialect['sampling'] as JsonObject) },
  }
  return { model, ...bodies[task] }
}

const chatChoice = { tool_choice: { type: 'function', function: { name: 'weather' } } }
const chatSampling = { temperature: 0.5, max_tokens: 100, stop: ['END'] }

/** Renames the keys of a body as SDKs with generated code have them; schemas stay as they are. */
function camelCase(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((item) => camelCase(item as JsonValue))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      key === 'parameters' || key === 'schema' ? inner : camelCase(inner as JsonValue),
    ]),
  )
}

/** The constructor and the one method of each SDK that is called. */
type New<Client> = new (options: object) => Client
type Send = (body: object, options?: object) => Promise<unknown>

const openaiVendor: VendorSdk = {
  name: 'openai',
  sdk: 'openai',
  model: openai('gpt-5'),
  prefix: '/v1',
  params: {
    tools: { tool_choice: { type: 'function', name: 'weather' } },
    reasoning: { reasoning: { effort: 'low' } },
    sampling: { temperature: 0.5, max_output_tokens: 100 },
  },
  async send(peers, origin, task) {
    const { OpenAI } = await peers.load<{ OpenAI: New<{ responses: { create: Send } }> }>('openai')
    const client = new OpenAI({ apiKey: 'k', baseURL: `${origin}/v1`, maxRetries: 0 })
    const text = (value: string): JsonObject => ({ type: 'input_text', text: value })
    const user = (...content: JsonObject[]): JsonObject => ({
      type: 'message',
      role: 'user',
      content,
    })
    const tools = [
      {
        type: 'function',
        name: 'weather',
        description: 'The weather of a city.',
        parameters: schema,
        strict: false,
      },
    ]
    const bodies: Record<TaskName, JsonObject> = {
      text: { input: [user(text('Hello'))] },
      system: { instructions: 'Be brief.', input: [user(text('Hello'))] },
      image: {
        input: [user(text('What is it?'), { type: 'input_image', image_url: pngUrl })],
      },
      document: {
        input: [
          user({ type: 'input_file', filename: 'a.pdf', file_data: pdfUrl }, text('Summarise.')),
        ],
      },
      tools: {
        input: [user(text('Weather?'))],
        tools,
        tool_choice: { type: 'function', name: 'weather' },
      },
      history: {
        input: [
          user(text('Weather?')),
          {
            type: 'function_call',
            call_id: callId,
            name: 'weather',
            arguments: '{"city":"Oslo"}',
          },
          { type: 'function_call_output', call_id: callId, output: 'rain' },
          user(text('Thanks')),
        ],
        tools,
      },
      structure: {
        input: [user(text('Hello'))],
        text: { format: { type: 'json_schema', name: 'answer', schema, strict: true } },
      },
      stream: { input: [user(text('Hello'))], stream: true },
      reasoning: { input: [user(text('Hello'))], reasoning: { effort: 'low' } },
      sampling: { input: [user(text('Hello'))], temperature: 0.5, max_output_tokens: 100 },
    }
    return client.responses.create({ model: 'gpt-5', ...bodies[task] })
  },
}

const anthropicVendor: VendorSdk = {
  name: 'anthropic',
  sdk: '@anthropic-ai/sdk',
  model: anthropic('claude-opus-4-6'),
  prefix: '/v1',
  params: {
    all: { max_tokens: 1024 },
    tools: { tool_choice: { type: 'tool', name: 'weather' } },
    reasoning: { max_tokens: 4096, thinking: { type: 'adaptive' } },
    sampling: { temperature: 0.5, max_tokens: 100, stop_sequences: ['END'] },
  },
  async send(peers, origin, task) {
    const { default: Anthropic } = await peers.load<{
      default: New<{ messages: { create: Send } }>
    }>('@anthropic-ai/sdk')
    const client = new Anthropic({ apiKey: 'k', baseURL: origin, maxRetries: 0 })
    const text = (value: string): JsonObject => ({ type: 'text', text: value })
    const user = (...content: JsonObject[]): JsonObject => ({ role: 'user', content })
    const tools = [{ name: 'weather', description: 'The weather of a city.', input_schema: schema }]
    const bodies: Record<TaskName, JsonObject> = {
      text: { messages: [user(text('Hello'))] },
      system: { system: 'Be brief.', messages: [user(text('Hello'))] },
      image: {
        messages: [
          user(text('What is it?'), {
            type: 'image',
            source: { type: 'base64', media_type: 'image/png', data: png },
          }),
        ],
      },
      document: {
        messages: [
          user(
            {
              type: 'document',
              source: { type: 'base64', media_type: 'application/pdf', data: pdf },
              title: 'a.pdf',
            },
            text('Summarise.'),
          ),
        ],
      },
      tools: {
        messages: [user(text('Weather?'))],
        tools,
        tool_choice: { type: 'tool', name: 'weather' },
      },
      history: {
        messages: [
          user(text('Weather?')),
          {
            role: 'assistant',
            content: [{ type: 'tool_use', id: callId, name: 'weather', input: { city: 'Oslo' } }],
          },
          user({ type: 'tool_result', tool_use_id: callId, content: 'rain' }),
          user(text('Thanks')),
        ],
        tools,
      },
      structure: {
        messages: [user(text('Hello'))],
        output_config: { format: { type: 'json_schema', schema } },
      },
      stream: { messages: [user(text('Hello'))], stream: true },
      reasoning: {
        max_tokens: 4096,
        messages: [user(text('Hello'))],
        thinking: { type: 'adaptive' },
      },
      sampling: {
        messages: [user(text('Hello'))],
        temperature: 0.5,
        max_tokens: 100,
        stop_sequences: ['END'],
      },
    }
    return client.messages.create({
      model: 'claude-opus-4-6',
      max_tokens: 1024,
      ...bodies[task],
    })
  },
}

const googleVendor: VendorSdk = {
  name: 'google',
  sdk: '@google/genai',
  model: google('gemini-2.5-flash'),
  prefix: '/v1beta',
  params: {
    tools: {
      toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['weather'] } },
    },
    reasoning: { thinkingConfig: { thinkingBudget: 1024 } },
    sampling: { temperature: 0.5, maxOutputTokens: 100, stopSequences: ['END'] },
  },
  explained: [
    [/^-\/generationConfig=\{\}$/, 'the SDK sends an empty object where no setting was given'],
    [
      /^-\/systemInstruction\/role="user"$/,
      'the SDK adds the role `user` to the system prompt; the examples of the API have none',
    ],
  ],
  async send(peers, origin, task) {
    const { GoogleGenAI } = await peers.load<{
      GoogleGenAI: New<{ models: { generateContent: Send; generateContentStream: Send } }>
    }>('@google/genai')
    // Our default is v1beta, which has everything of v1; this SDK asks v1 unless told otherwise.
    const httpOptions = { baseUrl: origin, apiVersion: 'v1beta' }
    const { models } = new GoogleGenAI({ apiKey: 'k', httpOptions })
    const user = (...parts: JsonObject[]): JsonObject => ({ role: 'user', parts })
    const hello = [user({ text: 'Hello' })]
    const tools = [
      {
        functionDeclarations: [
          {
            name: 'weather',
            description: 'The weather of a city.',
            parametersJsonSchema: schema,
          },
        ],
      },
    ]
    const bodies: Record<TaskName, JsonObject> = {
      text: { contents: hello },
      stream: { contents: hello },
      system: { contents: hello, config: { systemInstruction: 'Be brief.' } },
      image: {
        contents: [
          user({ text: 'What is it?' }, { inlineData: { mimeType: 'image/png', data: png } }),
        ],
      },
      document: {
        contents: [
          user({ inlineData: { mimeType: 'application/pdf', data: pdf } }, { text: 'Summarise.' }),
        ],
      },
      tools: {
        contents: [user({ text: 'Weather?' })],
        config: {
          tools,
          toolConfig: {
            functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['weather'] },
          },
        },
      },
      history: {
        contents: [
          user({ text: 'Weather?' }),
          {
            role: 'model',
            parts: [{ functionCall: { id: callId, name: 'weather', args: { city: 'Oslo' } } }],
          },
          user({
            functionResponse: { id: callId, name: 'weather', response: { output: 'rain' } },
          }),
          user({ text: 'Thanks' }),
        ],
        config: { tools },
      },
      structure: {
        contents: hello,
        config: { responseMimeType: 'application/json', responseJsonSchema: schema },
      },
      reasoning: { contents: hello, config: { thinkingConfig: { thinkingBudget: 1024 } } },
      sampling: {
        contents: hello,
        config: { temperature: 0.5, maxOutputTokens: 100, stopSequences: ['END'] },
      },
    }
    const request = { model: 'gemini-2.5-flash', ...bodies[task] }
    return task === 'stream'
      ? models.generateContentStream(request)
      : models.generateContent(request)
  },
}

const interactionsVendor: VendorSdk = {
  name: 'google interactions',
  sdk: '@google/genai',
  model: google('gemini-3.8-flash', { api: 'interactions' }),
  prefix: '/v1beta',
  params: {
    all: { store: false },
    tools: { generation_config: { tool_choice: { allowed_tools: { mode: 'any', tools: ['weather'] } } } }, // prettier-ignore
    reasoning: { generation_config: { thinking_level: 'low', thinking_summaries: 'auto' } },
    sampling: { temperature: 0.5, max_output_tokens: 100, stop_sequences: ['END'] },
  },
  async send(peers, origin, task) {
    const { GoogleGenAI } = await peers.load<{
      GoogleGenAI: New<{ interactions: { create: Send } }>
    }>('@google/genai')
    const httpOptions = { baseUrl: origin, apiVersion: 'v1beta' }
    const { interactions } = new GoogleGenAI({ apiKey: 'k', httpOptions })
    const text = (value: string): JsonObject => ({ type: 'text', text: value })
    const user = (...content: JsonObject[]): JsonObject => ({ type: 'user_input', content })
    const input = [user(text('Hello'))]
    const tools = [
      {
        type: 'function',
        name: 'weather',
        description: 'The weather of a city.',
        parameters: schema,
      },
    ]
    const bodies: Record<TaskName, JsonObject> = {
      text: { input },
      stream: { input, stream: true },
      system: { input, system_instruction: 'Be brief.' },
      image: {
        input: [user(text('What is it?'), { type: 'image', mime_type: 'image/png', data: png })],
      },
      document: {
        input: [
          user({ type: 'document', mime_type: 'application/pdf', data: pdf }, text('Summarise.')),
        ],
      },
      tools: {
        input: [user(text('Weather?'))],
        tools,
        generation_config: { tool_choice: { allowed_tools: { mode: 'any', tools: ['weather'] } } },
      },
      history: {
        input: [
          user(text('Weather?')),
          { type: 'function_call', id: callId, name: 'weather', arguments: { city: 'Oslo' } },
          { type: 'function_result', call_id: callId, name: 'weather', result: 'rain' },
          user(text('Thanks')),
        ],
        tools,
      },
      structure: {
        input,
        response_format: { type: 'text', mime_type: 'application/json', schema },
      },
      reasoning: {
        input,
        generation_config: { thinking_level: 'low', thinking_summaries: 'auto' },
      },
      sampling: {
        input,
        generation_config: { temperature: 0.5, max_output_tokens: 100, stop_sequences: ['END'] },
      },
    }
    return interactions.create(
      { model: 'gemini-3.8-flash', store: false, ...bodies[task] },
      { maxRetries: 0 },
    )
  },
}

const mistralVendor: VendorSdk = {
  name: 'mistral',
  sdk: '@mistralai/mistralai',
  model: mistral('mistral-large-latest'),
  prefix: '/v1',
  params: {
    tools: chatChoice,
    reasoning: { prompt_mode: 'reasoning' },
    sampling: chatSampling,
  },
  explained: [
    [/^-\/stream=false$/, 'the SDK sends its default `false`'],
    [
      /^-\/messages\/1\/(?:prefix=false|tool_calls\/0\/index=0)$/,
      'the SDK sends its defaults of `prefix` (false) and `index` (0)',
    ],
  ],
  async send(peers, origin, task) {
    const { Mistral } = await peers.load<{
      Mistral: New<{ chat: { complete: Send; stream: Send } }>
    }>('@mistralai/mistralai')
    const { chat } = new Mistral({ apiKey: 'k', serverURL: origin })
    const body = chatBody(task, {
      model: 'mistral-large-latest',
      document: { type: 'document_url', document_url: pdfUrl, document_name: 'a.pdf' },
      reasoning: { prompt_mode: 'reasoning' },
      sampling: chatSampling,
    })
    // The SDK names this one field of a schema in its own way.
    const renamed = JSON.parse(
      JSON.stringify(camelCase(body)).replace('"schema":', '"schemaDefinition":'),
    ) as JsonObject
    const { stream: _, ...request } = renamed
    return task === 'stream' ? chat.stream(request) : chat.complete(request)
  },
}

const groqVendor: VendorSdk = {
  name: 'groq',
  sdk: 'groq-sdk',
  model: groq('openai/gpt-oss-120b'),
  prefix: '/openai/v1',
  params: {
    tools: chatChoice,
    reasoning: { reasoning_effort: 'low', reasoning_format: 'parsed' },
    sampling: { temperature: 0.5, max_completion_tokens: 100, stop: ['END'] },
  },
  absent: { document: noDocuments },
  explained: [[/^\+\/stream_options=\{"include_usage":true\}$/, usageInStreams]],
  async send(peers, origin, task) {
    const { default: Groq } = await peers.load<{
      default: New<{ chat: { completions: { create: Send } } }>
    }>('groq-sdk')
    const client = new Groq({ apiKey: 'k', baseURL: origin, maxRetries: 0 })
    return client.chat.completions.create(
      chatBody(task, {
        model: 'openai/gpt-oss-120b',
        reasoning: { reasoning_effort: 'low', reasoning_format: 'parsed' },
        sampling: { temperature: 0.5, max_completion_tokens: 100, stop: ['END'] },
      }),
    )
  },
}

const cerebrasVendor: VendorSdk = {
  name: 'cerebras',
  sdk: '@cerebras/cerebras_cloud_sdk',
  model: cerebras('gpt-oss-120b'),
  prefix: '/v1',
  params: {
    tools: chatChoice,
    reasoning: { reasoning_effort: 'low', reasoning_format: 'parsed' },
    sampling: { temperature: 0.5, max_completion_tokens: 100, stop: ['END'] },
  },
  absent: { document: noDocuments },
  explained: [[/^\+\/stream_options=\{"include_usage":true\}$/, usageInStreams]],
  async send(peers, origin, task) {
    const { default: Cerebras } = await peers.load<{
      default: New<{ chat: { completions: { create: Send } } }>
    }>('@cerebras/cerebras_cloud_sdk')
    const settings = { apiKey: 'k', baseURL: origin, maxRetries: 0, warmTCPConnection: false }
    return new Cerebras(settings).chat.completions.create(
      chatBody(task, {
        model: 'gpt-oss-120b',
        reasoning: { reasoning_effort: 'low', reasoning_format: 'parsed' },
        sampling: { temperature: 0.5, max_completion_tokens: 100, stop: ['END'] },
      }),
    )
  },
}

const ollamaVendor: VendorSdk = {
  name: 'ollama',
  sdk: 'ollama',
  model: ollama('qwen3'),
  prefix: '/api',
  params: {
    reasoning: { think: true },
    sampling: { options: { temperature: 0.5, num_predict: 100, stop: ['END'] } },
  },
  absent: { document: noDocuments },
  explained: [],
  async send(peers, origin, task) {
    const { Ollama } = await peers.load<{ Ollama: New<{ chat: Send }> }>('ollama')
    const client = new Ollama({ host: origin })
    const user = { role: 'user', content: 'Hello' }
    const weather = {
      type: 'function',
      function: { name: 'weather', description: 'The weather of a city.', parameters: schema },
    }
    const bodies: Partial<Record<TaskName, JsonObject>> = {
      text: { messages: [user] },
      system: { messages: [{ role: 'system', content: 'Be brief.' }, user] },
      image: { messages: [{ role: 'user', content: 'What is it?', images: [png] }] },
      tools: { messages: [{ role: 'user', content: 'Weather?' }], tools: [weather] },
      history: {
        messages: [
          { role: 'user', content: 'Weather?' },
          {
            role: 'assistant',
            content: '',
            tool_calls: [{ function: { name: 'weather', arguments: { city: 'Oslo' } } }],
          },
          { role: 'tool', content: 'rain', tool_name: 'weather' },
          { role: 'user', content: 'Thanks' },
        ],
        tools: [weather],
      },
      structure: { messages: [user], format: schema },
      stream: { messages: [user], stream: true },
      reasoning: { messages: [user], think: true },
      sampling: {
        messages: [user],
        options: { temperature: 0.5, num_predict: 100, stop: ['END'] },
      },
    }
    return client.chat({ model: 'qwen3', ...bodies[task] })
  },
}

const openrouterVendor: VendorSdk = {
  name: 'openrouter',
  sdk: '@openrouter/sdk',
  model: openrouter('openai/gpt-5'),
  prefix: '/api/v1',
  params: {
    tools: chatChoice,
    reasoning: { reasoning: { effort: 'low' } },
    sampling: chatSampling,
  },
  explained: [
    [/^\+\/stream_options=\{"include_usage":true\}$/, usageInStreams],
    [/^-\/stream=false$/, 'the SDK sends its default `false`'],
  ],
  async send(peers, origin, task) {
    const { OpenRouter } = await peers.load<{ OpenRouter: New<{ chat: { send: Send } }> }>(
      '@openrouter/sdk',
    )
    const client = new OpenRouter({
      apiKey: 'k',
      serverURL: `${origin}/api/v1`,
      retryConfig: { strategy: 'none' },
    })
    const body = chatBody(task, {
      model: 'openai/gpt-5',
      document: { type: 'file', file: { filename: 'a.pdf', file_data: pdfUrl } },
      reasoning: { reasoning: { effort: 'low' } },
      sampling: chatSampling,
    })
    return client.chat.send({ chatRequest: camelCase(body) })
  },
}

export const vendorSdks: readonly VendorSdk[] = [
  openaiVendor,
  anthropicVendor,
  googleVendor,
  interactionsVendor,
  mistralVendor,
  groqVendor,
  cerebrasVendor,
  ollamaVendor,
  openrouterVendor,
]
