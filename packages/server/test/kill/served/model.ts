import type { LLMRequest, ModelReference } from '@skein/ai'
import { calls, says, scripted, waits } from '@skein/ai/testing'

/** What a message of the test asks for. */
export interface Wanted {
  readonly calls?: readonly { readonly tool: string; readonly args: object }[]
}

/** A model that makes the calls that the last message asks for, and then says that it is done. */
export function obedient(modelId: string): ModelReference {
  return scripted(
    (request) => {
      const wanted = wantedBy(request)
      const made = wanted.map(({ tool, args }) => calls(tool, args as never))
      return [waits(30), ...(made.length > 0 ? made : [says('Done.')])]
    },
    { modelId },
  )
}

/** The calls that the last message with a wish asks for; none if they were made. */
function wantedBy({ messages }: LLMRequest): NonNullable<Wanted['calls']> {
  const place = messages.findLastIndex(
    ({ type, text }) => type === 'user' && text.includes('{"calls"'),
  )
  const later = messages.slice(place + 1)
  if (place < 0 || later.some((one) => one.type === 'assistant' && one.toolCalls?.length)) return []
  const { text } = messages[place]!
  const wish = JSON.parse(text.slice(text.indexOf('{"calls"'))) as Wanted
  return wish.calls ?? []
}
