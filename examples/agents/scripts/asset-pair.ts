import { calls, type ScriptFunction } from '@skein/ai/testing'
import { readConversation, speaks } from './conversation.ts'

/** The worker's first draft is too long; told so, it writes a short one. */
export const workerScript: ScriptFunction = (request) => {
  const { heard } = readConversation(request)
  const subject = subjectOf(heard.at(-1) ?? '')
  const isFirst = !request.messages.some(({ type }) => type === 'assistant')
  return speaks(
    isFirst
      ? `${subject}, made with great care and much love for you and your whole family, every day`
      : `${subject}, made with care`,
  )
}

/** The reviewer accepts at most ten words. */
export const reviewerScript: ScriptFunction = (request) => {
  const { text } = readConversation(request)
  const words = text.split(/\s+/).length
  return words > 10
    ? speaks(`Too long: ${words} words, ten at most.`)
    : calls('approve_asset', { asset: text })
}

/** "Please write a label for the oak loom." is about the oak loom. */
function subjectOf(text: string): string {
  const subject = /\bfor (?:the |a |an |my |our )?([^.!?]+)/i.exec(text)?.[1] ?? 'Our best'
  return subject.charAt(0).toUpperCase() + subject.slice(1).trim()
}
