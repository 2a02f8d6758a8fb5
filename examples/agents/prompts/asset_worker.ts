import { definePrompt, type PromptDefinition } from '@skein/runtime'
import { exampleModel } from '../example-model.ts'
import { workerScript } from '../scripts/asset-pair.ts'

const assetWorker: PromptDefinition = definePrompt({
  name: 'asset_worker',
  prompt: 'You write one-line labels. Answer with the label alone; mend it when you are told why.',
  model: exampleModel('asset_worker_script', workerScript),
})

export default assetWorker
