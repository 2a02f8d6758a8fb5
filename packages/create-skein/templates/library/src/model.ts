import type { ModelReference } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { openai } from '@skein/ai/openai'
import { calls, says, scripted } from '@skein/ai/testing'

/** The model of the first vendor whose key is in `.env`; otherwise a script, which needs no key. */
export function chooseModel(): ModelReference {
  const { ANTHROPIC_API_KEY, OPENAI_API_KEY, GOOGLE_API_KEY } = process.env
  if (ANTHROPIC_API_KEY) return anthropic('claude-sonnet-4-5')
  if (OPENAI_API_KEY) return openai('gpt-5-mini')
  if (GOOGLE_API_KEY) return google('gemini-2.5-flash')
  return scripted([
    calls('count_words', { text: 'A skein is a length of thread.' }),
    says('It has seven words. (A scripted model said this; no key was used.)'),
    says('It was: A skein is a length of thread.'),
  ])
}
