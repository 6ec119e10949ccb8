"""An answer with everything that Markdown of models has: reasoning, formulas, a table, tasks, a quote, code."""

QUESTION = "When does a parabola meet the x-axis?"
THOUGHT_MS = 12_000
ANSWER = r"""<think>
The roots of a quadratic equation. The discriminant tells how many there are.
</think>

The parabola $y = ax^2 + bx + c$ with $a \neq 0$ meets the axis where

$$
x_{1,2} = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}
$$

How often, the *discriminant* $\Delta = b^2 - 4ac$ says:

| $\Delta$ | Roots | Example |
|:--------:|------:|:--------|
| $> 0$ | 2 | $x^2 - 1$ |
| $= 0$ | 1 | $x^2$ |
| $< 0$ | 0 | $x^2 + 1$ |

- [x] derive the formula
- [ ] try it with $a = 1$, which costs neither $5 nor $10

> Where $\Delta < 0$ the roots are complex, as $e^{i\pi} = -1$ is real.

```python
def roots(a, b, c):
    root = (b * b - 4 * a * c) ** 0.5
    return (-b - root) / (2 * a), (-b + root) / (2 * a)
```
"""
