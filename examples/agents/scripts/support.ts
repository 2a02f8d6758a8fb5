import { calls, type ScriptFunction } from '@skein/ai/testing'
import { orderIn, readConversation, speaks } from './conversation.ts'

/** How the desk behaves without a real model. */
export const supportScript: ScriptFunction = (request) => {
  const { text, result } = readConversation(request)
  const asset = result('asset_subagent')
  if (asset)
    return speaks(asset.isError ? `That did not work: ${asset.text}` : `Here it is: ${asset.text}`)
  const order = result('look_up_order')
  if (order?.isError) return speaks(order.text)
  if (order) {
    const { order: number, item, status } = order.value as Record<string, string> // our own tool's
    return speaks(`Order ${number}, ${item}, is ${status}.`)
  }
  if (/refund|money back|pay back/i.test(text)) return calls('refunds')
  if (/label|slogan|write|draw|design/i.test(text))
    return calls('asset_subagent', { message: text })
  const number = orderIn(text)
  if (number !== undefined) return calls('look_up_order', { order: number })
  return speaks(
    'This is the support desk. Ask me about an order (O-7, O-8, O-9), for a refund of one, ' +
      'or to have a label written.',
  )
}
