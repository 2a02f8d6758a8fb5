import { calls, type ScriptFunction } from '@skein/ai/testing'
import { orderIn, readConversation, speaks } from './conversation.ts'

/** How the refunds desk behaves without a real model. */
export const refundsScript: ScriptFunction = (request) => {
  const { heard, result } = readConversation(request)
  const refund = result('refund')
  if (refund?.isError) return speaks(`It was not refunded. ${refund.text}`)
  if (refund) {
    const { order, refunded } = refund.value as Record<string, string> // our own tool's
    return speaks(`Done: ${refunded} euros for order ${order} are on their way back.`)
  }
  const found = result('look_up_order')
  if (found?.isError) return speaks(found.text)
  if (found) {
    const { order, amount } = found.value as { order: string; amount: number } // our own tool's
    return calls('refund', { order, amount })
  }
  const number = heard.map(orderIn).find((order) => order !== undefined)
  if (number === undefined) return speaks('Which order shall I refund? O-7, O-8 or O-9?')
  return calls('look_up_order', { order: number })
}
