import { calls, says, startVendorServer, type RunningVendorServer } from '@skein/ai/testing'

/**
 * What answers the programs of this folder in the tests, in OpenAI's format: it looks the order up, refunds it, and
 * knows the name of the person only if the program has kept the conversation.
 */
export function startScriptedVendor(): Promise<RunningVendorServer> {
  return startVendorServer(({ messages }) => {
    const told = messages.flatMap((message) => (message.type === 'user' ? [message.text] : []))
    const name = told.some((text) => text.includes('I am Ada')) ? 'Ada' : 'stranger'
    const isRefund = told.at(-1)?.includes('refund') === true
    if (messages.at(-1)?.type === 'tool_result')
      return says(
        isRefund ? `Done, ${name}: order O-7 is refunded.` : `Order O-7 is on its way, ${name}.`,
      )
    return calls(isRefund ? 'refund' : 'look_up_order', { order: 'O-7' })
  })
}
