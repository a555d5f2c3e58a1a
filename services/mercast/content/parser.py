"""Filter text to expression, by recursive descent.

    filter    := [ or ]                      an empty filter means all
    or        := and { OR and }
    and       := not { AND not }
    not       := NOT not | ( or ) | TRUE | FALSE | predicate
    predicate := name                        a bare boolean
               | name compare value | value compare name
               | name [NOT] BETWEEN value AND value
               | name [NOT] IN ( value {, value} )
               | name [NOT] LIKE string [ESCAPE string]
               | name IS [NOT] NULL

Written by hand rather than generated: it is several times faster than a table-driven parser in Python (a broker parses
every subscription again when it restarts), and it knows what it was about to read, so it can say what would be right.
"""

from typing import cast

from mercast.content.errors import ContentError, FilterError
from mercast.content.expression import (
    FALSE,
    TRUE,
    And,
    Between,
    Compare,
    Expression,
    In,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
)
from mercast.content.lexer import Token, plain_list, tokens
from mercast.content.like import compile_like
from mercast.content.values import INT_MAX, INT_MIN, Value, check_name, check_text
from mercast.limits import DEFAULTS, Limits

_MIRRORED: dict[str, Operator] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NAMES = ("name", "quoted")
_VALUES = ("string", "number", "TRUE", "FALSE", "+", "-")


def parse(text: str, limits: Limits = DEFAULTS) -> Expression:
    """The expression of a filter text; FilterError with the place and what would be right."""
    if not isinstance(text, str):
        raise ContentError(f"a filter is a text, not {type(text).__name__}")
    if len(text) > limits.filter_length:
        raise ContentError(f"the filter has {len(text)} characters, at most {limits.filter_length} are allowed")
    check_text(text, "filter")
    return _Parser(text, limits).filter()


def parse_value(text: str, limits: Limits = DEFAULTS) -> Value:
    """A value alone, written as in a filter."""
    parser = _Parser(text, limits)
    value = parser.value()
    if parser.token.kind != "end":
        raise parser.wrong("the end of the value")
    return value


class _Parser:
    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.tokens = tokens(text)
        self.token = next(self.tokens)
        self.depth = 0
        self.values = 0

    # -- reading -----------------------------------------------------------------------------------------------------

    def take(self) -> Token:
        token = self.token
        self.token = next(self.tokens, token)  # after the end there is only the end
        return token

    def accept(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self.take()
        return True

    def expect(self, kind: str, expected: str, hint: str = "") -> Token:
        if self.token.kind != kind:
            raise self.wrong(expected, hint)
        return self.take()

    def wrong(self, expected: str, hint: str = "", token: Token | None = None) -> FilterError:
        token = token or self.token
        return FilterError.at(self.text, token.offset, str(token), expected, hint)

    # -- conditions --------------------------------------------------------------------------------------------------

    def filter(self) -> Expression:
        if self.token.kind == "end":
            return TRUE
        expression = self.either()
        if self.token.kind != "end":
            raise self.wrong("AND, OR or the end of the filter", self.hint_after_condition())
        return expression

    def either(self) -> Expression:
        terms = [self.both()]
        while self.accept("OR"):
            terms.append(self.both())
        return Or(tuple(terms)) if len(terms) > 1 else terms[0]

    def both(self) -> Expression:
        terms = [self.negation()]
        while self.accept("AND"):
            terms.append(self.negation())
        return And(tuple(terms)) if len(terms) > 1 else terms[0]

    def negation(self) -> Expression:
        if self.token.kind not in ("NOT", "("):
            return self.predicate()
        opening = self.take()
        self.depth += 1
        if self.depth > self.limits.filter_depth:
            raise self.wrong(f"at most {self.limits.filter_depth} nested NOTs and parentheses", token=opening)
        expression: Expression
        if opening.kind == "NOT":
            expression = Not(self.negation())
        else:
            expression = self.either()
            self.expect(")", "AND, OR or a closing parenthesis", self.hint_after_condition())
        self.depth -= 1
        return expression

    def predicate(self) -> Expression:
        if self.token.kind in _NAMES:
            return self.about(self.name())
        if self.token.kind in _VALUES:
            return self.mirrored()
        raise self.wrong("a condition such as price > 10", self.hint_for_condition())

    def mirrored(self) -> Expression:
        """`10 < price`, or TRUE or FALSE alone."""
        first = self.token
        value = self.value(counts=first.kind not in ("TRUE", "FALSE"))
        if isinstance(value, bool) and self.token.kind not in _MIRRORED:
            return TRUE if value else FALSE
        if self.token.kind not in _MIRRORED:
            raise self.wrong("a comparison such as < or =", "a condition starts with an attribute: price > 10")
        operator = _MIRRORED[self.take().kind]
        if self.token.kind not in _NAMES:
            raise self.wrong("the name of an attribute", f"{first.text} is a value; only attributes can be compared")
        compared = Compare(self.name(), operator, value)
        if self.token.kind in _MIRRORED:
            raise self.wrong("AND, OR or the end of the filter", "for a range write: price BETWEEN 1 AND 5")
        return compared

    def about(self, name: str) -> Expression:
        if self.token.kind in _MIRRORED:
            operator = cast(Operator, self.take().kind)
            return Compare(name, operator, self.value())
        if self.accept("IS"):
            negated = self.accept("NOT")
            self.expect("NULL", "NULL", "a boolean is tested by its name alone: active, or NOT active")
            return self.negated(IsNull(name), negated)
        negated = self.accept("NOT")
        if self.accept("BETWEEN"):
            low = self.value()
            self.expect("AND", "AND and the upper bound", "a range is written BETWEEN 1 AND 5")
            return self.negated(Between(name, low, self.value()), negated)
        if self.accept("IN"):
            return self.negated(In(name, self.listed()), negated)
        if self.accept("LIKE"):
            return self.negated(self.like(name), negated)
        if negated:
            raise self.wrong("BETWEEN, IN or LIKE", "NOT stands before a whole condition: NOT price = 5")
        self.count_value()
        return Compare(name, "=", True)

    def negated(self, leaf: Expression, negated: bool) -> Expression:
        return Not(leaf) if negated else leaf

    # -- names and values --------------------------------------------------------------------------------------------

    def name(self) -> str:
        token = self.take()
        try:
            name = check_name(token.name, "attribute", self.limits)
        except ContentError as error:
            raise self.wrong("the name of an attribute", str(error), token) from None
        if token.kind == "name" and self.token.kind == "(":
            raise self.wrong("a comparison such as =", f"functions are not part of filters; {name} is read as a name")
        return name

    def value(self, counts: bool = True) -> Value:
        token = self.token
        if token.kind not in _VALUES:
            raise self.wrong("a value: a number, a string in single quotes, TRUE or FALSE", self.hint_for_value())
        if counts:
            self.count_value()
        self.take()
        match token.kind:
            case "TRUE" | "FALSE":
                return token.kind == "TRUE"
            case "string":
                return token.text[1:-1].replace("''", "'")
            case "number":
                return self.number(token, "")
        return self.number(self.expect("number", "a number after the sign"), token.kind)

    def number(self, token: Token, sign: str) -> int | float:
        if token.text.isdecimal():
            # 20 digits are already too many; asking before int() keeps a number of a million digits cheap.
            digits = token.text.lstrip("0")
            integer = int(sign + digits) if digits and len(digits) <= len(str(INT_MAX)) else 0
            if (digits and not integer) or not INT_MIN <= integer <= INT_MAX:
                raise self.wrong("an int of 64 bits", "for larger numbers write a float, such as 1e20", token)
            return integer
        number = float(sign + token.text)
        if number in (float("inf"), float("-inf")):
            raise self.wrong("a finite number", "floats end near 1.8e308", token)
        return number

    def listed(self) -> tuple[Value, ...]:
        plain = plain_list(self.text, self.token.offset)
        if plain is not None and self.values + len(plain[0]) <= self.limits.filter_values:
            values, end = plain
            self.values += len(values)
            self.token = self.tokens.send(end)
            return tuple(values)
        self.expect("(", "a list of values in parentheses", "for example IN (1, 2)")
        values = [self.value()]
        while self.accept(","):
            values.append(self.value())
        self.expect(")", "a comma or a closing parenthesis")
        return tuple(values)

    def like(self, name: str) -> Like:
        token = self.expect("string", "a pattern in single quotes, such as 'AC%'")
        self.count_value()
        pattern, escape = token.text[1:-1].replace("''", "'"), "\\"
        if len(pattern) > self.limits.pattern_length:
            raise self.wrong(f"a pattern of at most {self.limits.pattern_length} characters", token=token)
        if self.accept("ESCAPE"):
            marked = self.expect("string", "the escape character in single quotes, such as '!'")
            escape = marked.text[1:-1].replace("''", "'")
            if len(escape) != 1:
                raise self.wrong("one escape character in single quotes, such as '!'", token=marked)
        try:
            compile_like(pattern, escape)
        except ContentError as error:
            raise self.wrong("a pattern", str(error), token) from None
        return Like(name, pattern, escape)

    def count_value(self) -> None:
        self.values += 1
        if self.values > self.limits.filter_values:
            raise self.wrong(f"at most {self.limits.filter_values} values in one filter")

    # -- help for the usual slips ------------------------------------------------------------------------------------

    def hint_for_value(self) -> str:
        token = self.token
        match token.kind:
            case "quoted":
                return f"for a string write '{token.name.replace(chr(39), chr(39) * 2)}'"
            case "name" if token.text.lower() in ("nan", "inf", "infinity"):
                return "NaN and infinity are not values"
            case "name":
                return f"an attribute is compared with a value; for a string write '{token.text}'"
            case "NULL":
                return "for a missing attribute write: name IS NULL"
            case "(":
                return "a single value needs no parentheses; several go with IN"
            case ")":
                return "the list or comparison lacks a value"
        return ""

    def hint_for_condition(self) -> str:
        match self.token.kind:
            case "end":
                return "the condition after AND, OR or NOT is missing"
            case "AND" | "OR":
                return "a condition is missing before it"
            case "IN" | "LIKE" | "BETWEEN" | "IS" | "ESCAPE" | "NULL":
                return f'an attribute of that name is written "{self.token.text}"'
        return ""

    def hint_after_condition(self) -> str:
        token = self.token
        if token.kind in _MIRRORED:
            return "for a range write: price BETWEEN 1 AND 5"
        if token.kind in ("+", "-"):
            return 'arithmetic is not part of filters; a name with odd characters goes in double quotes: "a-b"'
        if token.kind in ("string", "number"):
            return "is an operator missing before it?"
        if token.kind == ")":
            return "no parenthesis is open"
        if token.kind == "name" and token.text.lower() in (
            "ilike",
            "rlike",
            "regexp",
            "similar",
            "contains",
            "matches",
        ):
            return "for patterns write LIKE"
        return ""
