import { z } from 'zod'

/** What the refund agents of this folder have in common: their task, their model, their tool. */
export const task = 'Refund order O-7.'
export const instructions = 'You refund orders.'
export const modelId = 'gpt-5-mini'
export const toolName = 'refund'
export const toolDescription = 'Pays the money for an order back.'
export const toolSchema: z.ZodObject<{ order: z.ZodString; amount: z.ZodNumber }> = z.object({
  order: z.string(),
  amount: z.number(),
})

/** Calls the bank. */
export async function refund({ order, amount }: z.infer<typeof toolSchema>): Promise<string> {
  const response = await fetch(`https://bank.test/refunds/${order}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ amount }),
  })
  if (!response.ok) throw new Error(`The bank answered ${response.status}.`)
  return `refunded ${amount}`
}
