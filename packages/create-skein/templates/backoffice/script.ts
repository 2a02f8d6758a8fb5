import { calls } from '@skein/ai/testing'
import type { Script } from './model.ts'
import type { Order } from './shop.ts'

/** How the desk behaves without a model. Delete this file when you have a key. */
export const script: Script = ({ text, results }) => {
  const { look_up_order: found, refund } = results
  if (refund?.isError) return `It was not refunded. ${String(refund.value)}`
  if (refund) {
    const { order, refunded } = refund.value as { order: string; refunded: number }
    return `Done: ${refunded} euros for order ${order} are on their way back.`
  }
  if (found?.isError) return String(found.value)
  if (found) {
    const { number, item, amount, status } = found.value as Order
    if (/refund|money back/i.test(text)) return calls('refund', { order: number, amount })
    return `Order ${number}, ${item}, is ${status}.`
  }
  const number = /\bo-?(\d+)\b/i.exec(text)?.[1]
  if (number !== undefined) return calls('look_up_order', { order: `O-${number}` })
  return 'Which order? Say "refund O-7". This sentence is withheld: no order was looked up for it.'
}
