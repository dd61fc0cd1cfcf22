lockstep run: 2 of 4 points without an answer, the first: scenarios/rl/grpo-llama3-8b-colocated.json#/parallelism: found tensor 1 x pipeline 2 x data 8 = 16 GPUs; allowed: 32 (4 nodes of 8)
