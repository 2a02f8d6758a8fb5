import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { exampleModel } from '../example-model.ts'
import { refundsScript } from '../scripts/refunds.ts'

const refundsDesk: PromptDefinition = definePrompt({
  name: 'refunds_desk',
  prompt:
    'You are the refunds desk of a small shop. Look the order up, then refund exactly what it cost. ' +
    'If the refund was refused, say so and why. Be brief.',
  model: exampleModel('refunds_desk_script', refundsScript),
  tools: ['look_up_order', 'refund'],
})

export default refundsDesk
