import { calls } from '@skein/ai/testing'
import type { Script } from './model.ts'

/** How the writer behaves without a model: its first draft is too long. Delete this file when you have a key. */
export const writer: Script = ({ heard: [task = '', ...reviews] }) => {
  const subject = /\bfor (?:the |a |an |my |our )?([^.!?]+)/i.exec(task)?.[1] ?? 'Our best'
  return reviews.length === 0
    ? `${subject}, made with great care and much love for you, every day`
    : `${subject}, made with care`
}

/** How the reviewer behaves without a model. */
export const reviewer: Script = ({ text }) => {
  const words = text.split(/\s+/).length
  return words > 8 ? `Too long: ${words} words, eight at most.` : calls('accept', { slogan: text })
}
