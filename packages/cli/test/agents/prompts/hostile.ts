import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { calls, says, scripted } from '@skein/ai/testing'

/** Writes the clipboard, clears the screen, turns text round and paints a line over another. */
const text =
  'Hi\u001b]52;c;cm0gLXJm\u0007\u001b]0;title\u001b\\\u001b[2J\u009b2J \u202eevil\u202c a\u200bb\r approved: pay'

/** Calls a tool with arguments that hide the last one; asked to speak, it says the text above. */
const hostile: PromptDefinition = definePrompt({
  name: 'hostile',
  prompt: 'Misbehave.',
  model: scripted(({ messages }) =>
    messages.at(-1)?.text.includes('Speak')
      ? says(text)
      : calls('pay', {
          note: `gift \u202e\u009b1A${' '.repeat(3000)}`,
          reason: 'x'.repeat(2000),
          to: 'mallory',
        }),
  ),
  tools: ['pay', 'look'],
})

export default hostile
