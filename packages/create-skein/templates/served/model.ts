import type { LLMRequest, ModelReference } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { openai } from '@skein/ai/openai'
import { calls, emits, scripted, waits, type ScriptPart } from '@skein/ai/testing'

/**
 * The model of the prompts: that of the first vendor whose key is in `.env`, otherwise a script, which needs no key.
 * To choose yourself, write e.g. `model: anthropic('claude-sonnet-4-5')` in a prompt.
 */
export function model(script: Script): ModelReference {
  const { ANTHROPIC_API_KEY, OPENAI_API_KEY, GOOGLE_API_KEY } = process.env
  if (ANTHROPIC_API_KEY) return anthropic('claude-sonnet-4-5')
  if (OPENAI_API_KEY) return openai('gpt-5-mini')
  if (GOOGLE_API_KEY) return google('gemini-2.5-flash')
  return scripted((request) => {
    const conversation = read(request)
    const said = tried(conversation) ?? script(conversation)
    return typeof said === 'string' ? speaks(said) : said
  })
}

/** How an agent behaves without a model: it says a text or calls a tool. */
export type Script = (conversation: Conversation) => string | ScriptPart

/** What a script sees: what was said to it, and what its calls since the last words have returned. */
export interface Conversation {
  /** The last words. */
  readonly text: string
  /** All that was said to it, oldest first. */
  readonly heard: readonly string[]
  readonly results: Readonly<Record<string, { readonly isError: boolean; readonly value: unknown }>>
}

function read({ messages }: LLMRequest): Conversation {
  const at = messages.findLastIndex(({ type }) => type === 'user')
  const heard = messages.flatMap((message) => (message.type === 'user' ? [message.text] : []))
  const results: Record<string, { isError: boolean; value: unknown }> = {}
  const names = new Map<string, string>()
  for (const message of messages.slice(at + 1))
    if (message.type === 'assistant')
      for (const { toolCallId, toolName } of message.toolCalls ?? [])
        names.set(toolCallId, toolName)
    else if (message.type === 'tool_result')
      for (const { toolCallId, result: value, isError = false } of message.results)
        results[names.get(toolCallId) ?? ''] = { isError, value }
  return { text: heard.at(-1) ?? '', heard, results }
}

/** A new tool can be tried without a model: `call count_words {"text":"one two"}` calls it. */
function tried({ text, results }: Conversation): string | ScriptPart | undefined {
  const [, name, json] = /^call (\w+) (\{[^]*\})$/.exec(text.trim()) ?? []
  if (name === undefined || json === undefined) return undefined
  const result = results[name]
  if (!result) return calls(name, json)
  return `${name} ${result.isError ? 'failed' : 'returned'}: ${JSON.stringify(result.value)}`
}

/** Says a text word by word, slowly enough to be seen. */
function speaks(text: string): readonly ScriptPart[] {
  const words = text.match(/\S+\s*/g) ?? []
  return [
    emits({ type: 'content_block_start', index: 0, delta: { block: 'text' } }),
    ...words.flatMap((word) => [
      emits({ type: 'text_delta', index: 0, delta: { text: word } }),
      waits(30),
    ]),
    emits({ type: 'content_block_stop', index: 0, delta: {} }),
    { do: 'stop', usage: { outputTokens: words.length } },
  ]
}
