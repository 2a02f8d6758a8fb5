import { definePrompt } from '@skein/runtime'
import { model } from '../model.ts'
import { script } from '../script.ts'
import lookUpOrder from '../tools/look_up_order.ts'
import refund from '../tools/refund.ts'

export default definePrompt({
  name: 'refunds',
  prompt:
    'You are the refunds desk of a small shop. Look the order up before you speak about it, and refund exactly what ' +
    'it cost. If the refund was refused, say so and why. Be brief.',
  model: model(script),
  tools: [lookUpOrder, refund],
})
